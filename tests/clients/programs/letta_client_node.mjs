// An agent of `@letta-ai/letta-client` with a tool that reads files.
// Arguments: how (create, stream, streaming or conversation), and the prompt.
import { readFile } from "node:fs/promises";
import Letta from "@letta-ai/letta-client";

const [how, prompt] = process.argv.slice(2);
const agent = process.env.AGENT_ID;
const client = new Letta();
const tools = [
  {
    name: "read_file",
    description: "Reads a text file.",
    parameters: {
      type: "object",
      properties: { path: { type: "string", description: "Where the file is" } },
      required: ["path"],
    },
  },
];
const conversation = how === "conversation" ? (await client.conversations.create({ agent_id: agent })).id : "";

async function said(messages) {
  const request = { messages, client_tools: tools };
  const own = client.agents.messages;
  if (how === "create") return (await own.create(agent, request)).messages;
  if (how === "stream") return own.stream(agent, { ...request, stream_tokens: true });
  if (how === "streaming") return own.create(agent, { ...request, streaming: true });
  return client.conversations.messages.create(conversation, request);
}

let messages = [{ role: "user", content: prompt }];
for (;;) {
  const calls = new Map();
  let text = "";
  for await (const message of await said(messages)) {
    if (message.message_type === "assistant_message") text += message.content;
    if (message.message_type !== "approval_request_message") continue;
    const many = Array.isArray(message.tool_calls) ? message.tool_calls : [message.tool_call];
    for (const { tool_call_id, arguments: part } of many) {
      calls.set(tool_call_id, (calls.get(tool_call_id) ?? "") + (part ?? ""));
    }
  }
  if (calls.size === 0) {
    process.stdout.write(text);
    break;
  }
  const approvals = [];
  for (const [tool_call_id, found] of calls) {
    const tool_return = await readFile(JSON.parse(found).path, "utf8");
    approvals.push({ type: "tool", tool_call_id, tool_return, status: "success" });
  }
  messages = [{ type: "approval", approvals }];
}
