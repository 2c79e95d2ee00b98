// Vercel's AI SDK with its own telemetry.
const { createOpenAI } = require("@ai-sdk/openai");
const { OpenTelemetry } = require("@ai-sdk/otel");
const { generateText, jsonSchema, registerTelemetry, streamText, tool } = require("ai");
const { MODEL, PLAN, USER, serve } = require("../cell.cjs");

registerTelemetry(new OpenTelemetry());
const Plan = tool({ description: "Plan.", inputSchema: jsonSchema(PLAN) });

async function call(cell) {
  const openai = createOpenAI({ baseURL: `${cell.url}/v1`, apiKey: "scripted" });
  const asked = {
    model: process.env.API === "responses" ? openai.responses(MODEL) : openai.chat(MODEL),
    prompt: USER,
    maxRetries: 0,
    abortSignal: AbortSignal.timeout(cell.timeout),
    telemetry: { functionId: "planner" },
    tools: cell.tools ? { Plan } : {},
  };
  return cell.stream ? streamText(asked).text : (await generateText(asked)).text;
}

serve(call);
