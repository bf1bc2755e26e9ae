// An agent of the `openai` package that speaks the Responses API. Arguments: how (whole or stream), and the prompt.
import { readFile } from "node:fs/promises";
import OpenAI from "openai";

const [how, prompt] = process.argv.slice(2);
const client = new OpenAI();
const tools = [
  {
    type: "function",
    name: "read_file",
    description: "Reads a text file.",
    strict: false,
    parameters: {
      type: "object",
      properties: { path: { type: "string", description: "Where the file is" } },
      required: ["path"],
    },
  },
];
const input = [{ role: "user", content: prompt }];
for (;;) {
  const request = { model: process.env.MODEL, input, tools };
  const response =
    how === "whole"
      ? await client.responses.create(request)
      : await client.responses.stream(request).finalResponse();
  input.push(...response.output);
  const calls = response.output.filter((item) => item.type === "function_call");
  if (calls.length === 0) {
    process.stdout.write(response.output_text);
    break;
  }
  for (const call of calls) {
    const output = await readFile(JSON.parse(call.arguments).path, "utf8");
    input.push({ type: "function_call_output", call_id: call.call_id, output });
  }
}
