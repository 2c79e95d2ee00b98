// The OpenAI SDK for Node under OpenTelemetry's own instrumentation.
const { OTLPLogExporter } = require("@opentelemetry/exporter-logs-otlp-proto");
const { registerInstrumentations } = require("@opentelemetry/instrumentation");
const { OpenAIInstrumentation } = require("@opentelemetry/instrumentation-openai");
const { LoggerProvider, BatchLogRecordProcessor } = require("@opentelemetry/sdk-logs");
const { MODEL, PLAN, USER, resource, serve, tracerProvider } = require("../cell.cjs");

const MESSAGES = [{ role: "user", content: USER }];
const TOOL = { type: "function", function: { name: "Plan", parameters: PLAN } };

const exporter = new OTLPLogExporter();
const records = new BatchLogRecordProcessor({ exporter });
const loggerProvider = new LoggerProvider({ resource, processors: [records] });
registerInstrumentations({
  tracerProvider,
  loggerProvider,
  instrumentations: [new OpenAIInstrumentation({ captureMessageContent: true })],
});
const OpenAI = require("openai");

async function call(cell) {
  const baseURL = `${cell.url}/v1`;
  const client = new OpenAI({ baseURL, apiKey: "scripted", maxRetries: 0, timeout: cell.timeout });
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

serve(call, () => loggerProvider.forceFlush());
