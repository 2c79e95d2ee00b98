// Posts an event and two answers; the compiler checks them against the types of the document.
import createClient from "openapi-fetch";
import type { paths } from "./failsoft.js";

declare const process: { env: Record<string, string> };

const headers = { Authorization: `Bearer ${process.env.FAILSOFT_KEY}` };
const client = createClient<paths>({ baseUrl: process.env.FAILSOFT_URL, headers });
const now = new Date().toISOString();
const { data, error, response } = await client.POST("/api/v1/events", {
  params: { query: { verbose: true } },
  body: [
    {
      event_id: crypto.randomUUID(),
      name: "graph.plan.parse_invalid",
      occurred_at: now,
      correlation_id: "run-1",
      cycle: 1,
      attempt: 1,
      parse_error_type: "not_json",
      attributes: { region: "eu" },
    },
    {
      name: "answered",
      node: "plan",
      occurred_at: now,
      correlation_id: "run-2",
      text: '{"title": "Refund", "steps": []}',
    },
    {
      name: "graph.plan.answered",
      occurred_at: now,
      correlation_id: "run-3",
      tool_calls: [{ name: "plan", arguments: { title: "Refund" } }],
    },
  ],
});
console.log(JSON.stringify({ status: response.status, ...(data ?? error) }));
