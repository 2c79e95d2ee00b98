// OpenAI's Agents SDK for JavaScript under OpenInference.
const agents = require("@openai/agents");
const phoenix = require("@arizeai/openinference-instrumentation-openai-agents");
const OpenAI = require("openai");
const { MODEL, PLAN, SYSTEM, USER, serve, tracerProvider } = require("../cell.cjs");

new phoenix.OpenAIAgentsInstrumentation({ tracerProvider }).manuallyInstrument(agents);

async function call(cell) {
  const baseURL = `${cell.url}/v1`;
  const client = new OpenAI({ baseURL, apiKey: "scripted", maxRetries: 0, timeout: cell.timeout });
  const { OpenAIChatCompletionsModel, OpenAIResponsesModel } = agents;
  const api = process.env.API === "responses" ? OpenAIResponsesModel : OpenAIChatCompletionsModel;
  const plan = agents.tool({
    name: "Plan",
    description: "Plan.",
    parameters: { ...PLAN, additionalProperties: true },
    strict: false,
    execute: (told) => JSON.stringify(told),
  });
  const agent = new agents.Agent({
    name: "planner",
    instructions: SYSTEM,
    model: new api(client, MODEL),
    tools: cell.tools ? [plan] : [],
    toolUseBehavior: "stop_on_first_tool",
  });
  const result = await agents.run(agent, USER, { maxTurns: 1, stream: cell.stream });
  if (cell.stream) await result.completed;
  return result.finalOutput;
}

serve(call, () => agents.getGlobalTraceProvider().forceFlush());
