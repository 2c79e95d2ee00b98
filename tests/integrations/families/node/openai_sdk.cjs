// The OpenAI SDK for Node under OpenTelemetry's own instrumentation; a cell a line, as cell.py.
const readline = require("node:readline");
const { trace } = require("@opentelemetry/api");
const { OTLPTraceExporter } = require("@opentelemetry/exporter-trace-otlp-proto");
const { OTLPLogExporter } = require("@opentelemetry/exporter-logs-otlp-proto");
const { registerInstrumentations } = require("@opentelemetry/instrumentation");
const { OpenAIInstrumentation } = require("@opentelemetry/instrumentation-openai");
const { detectResources, envDetector } = require("@opentelemetry/resources");
const { LoggerProvider, BatchLogRecordProcessor } = require("@opentelemetry/sdk-logs");
const { NodeTracerProvider, BatchSpanProcessor } = require("@opentelemetry/sdk-trace-node");

const MODEL = "scripted-1";
const MESSAGES = [{ role: "user", content: "A customer wants a refund." }];
const PLAN = {
  title: "Plan",
  type: "object",
  required: ["title", "steps"],
  properties: {
    title: { type: "string" },
    steps: {
      type: "array",
      items: { type: "object", required: ["tool"], properties: { tool: { type: "string" } } },
    },
  },
};
const TOOL = { type: "function", function: { name: "Plan", parameters: PLAN } };

const resource = detectResources({ detectors: [envDetector] });
const spans = new BatchSpanProcessor(new OTLPTraceExporter());
const tracerProvider = new NodeTracerProvider({ resource, spanProcessors: [spans] });
tracerProvider.register();
const exporter = new OTLPLogExporter();
const records = new BatchLogRecordProcessor({ exporter });
const loggerProvider = new LoggerProvider({ resource, processors: [records] });
registerInstrumentations({
  tracerProvider,
  loggerProvider,
  instrumentations: [new OpenAIInstrumentation({ captureMessageContent: true })],
});
const OpenAI = require("openai");

async function call(client, cell) {
  const asked = { model: MODEL, messages: MESSAGES, ...(cell.tools ? { tools: [TOOL] } : {}) };
  if (cell.stream) {
    const usage = { stream: true, stream_options: { include_usage: true } };
    let text = "";
    for await (const piece of await client.chat.completions.create({ ...asked, ...usage })) {
      text += piece.choices[0]?.delta?.content ?? "";
    }
    return text;
  }
  const { message } = (await client.chat.completions.create(asked)).choices[0];
  return cell.tools ? message.tool_calls[0].function.arguments : message.content;
}

function isPlan(text) {
  try {
    return typeof JSON.parse(text).steps[0].tool === "string";
  } catch {
    return false;
  }
}

async function ask(cell) {
  const baseURL = `${cell.url}/v1`;
  const timeout = cell.name === "timeout" ? 800 : 30000;
  const client = new OpenAI({ baseURL, apiKey: "scripted", maxRetries: 0, timeout });
  await trace.getTracer("agent").startActiveSpan("agent", async (span) => {
    try {
      for (let left = cell.calls; left; left -= 1) if (isPlan(await call(client, cell))) return;
    } finally {
      span.end();
    }
  });
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const cell = JSON.parse(line);
    const raised = await ask(cell).then(() => null, (error) => String(error).slice(0, 300));
    await loggerProvider.forceFlush();
    await tracerProvider.forceFlush();
    console.log(`{"cell": ${JSON.stringify(cell.name)}, "raised": ${JSON.stringify(raised)}}`);
  }
}

main();
