// What the clients for Node share, as cell.py: a cell comes in by line, its telemetry goes out
// before the next one.
const readline = require("node:readline");
const { trace } = require("@opentelemetry/api");
const { OTLPTraceExporter } = require("@opentelemetry/exporter-trace-otlp-proto");
const { detectResources, envDetector } = require("@opentelemetry/resources");
const { NodeTracerProvider, BatchSpanProcessor } = require("@opentelemetry/sdk-trace-node");

exports.MODEL = "scripted-1";
exports.SYSTEM = "Plan in JSON.";
exports.USER = "A customer wants a refund.";
exports.PLAN = {
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
exports.resource = detectResources({ detectors: [envDetector] });
const spans = new BatchSpanProcessor(new OTLPTraceExporter());
exports.tracerProvider = new NodeTracerProvider({
  resource: exports.resource,
  spanProcessors: [spans],
});
exports.tracerProvider.register();

function isPlan(text) {
  try {
    return typeof JSON.parse(text).steps[0].tool === "string";
  } catch {
    return false;
  }
}

// Asks in one trace until the answer is a plan; `call` returns its text.
function askUntilPlan(cell, call) {
  return trace.getTracer("agent").startActiveSpan("agent", async (span) => {
    try {
      for (let left = cell.calls; left; left -= 1) if (isPlan(await call(cell))) return;
    } finally {
      span.end();
    }
  });
}

// Plays every cell of standard input; what the client raises is part of the play.
exports.serve = async (call, flush = async () => {}) => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const cell = JSON.parse(line);
    cell.timeout = cell.name === "timeout" ? 800 : 30000;
    const asked = askUntilPlan(cell, call);
    const raised = await asked.then(() => null, (error) => String(error).slice(0, 300));
    await flush();
    await exports.tracerProvider.forceFlush();
    console.log(`{"cell": ${JSON.stringify(cell.name)}, "raised": ${JSON.stringify(raised)}}`);
  }
};
