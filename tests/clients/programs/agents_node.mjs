// An agent of the OpenAI Agents SDK with a tool that reads files. Arguments: how (whole or stream), and the prompt.
import { readFile } from "node:fs/promises";
import { Agent, run, setTracingDisabled, tool } from "@openai/agents";
import { z } from "zod";

const [how, prompt] = process.argv.slice(2);
setTracingDisabled(true);
const agent = new Agent({
  name: "reader",
  model: process.env.MODEL,
  tools: [
    tool({
      name: "read_file",
      description: "Reads a text file.",
      parameters: z.object({ path: z.string().describe("Where the file is") }),
      execute: ({ path }) => readFile(path, "utf8"),
    }),
  ],
});
const result = await run(agent, prompt, { stream: how === "stream" });
if (how === "stream") await result.completed;
process.stdout.write(result.finalOutput);
