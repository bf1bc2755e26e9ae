// An agent of the `openai` package with a tool that reads files. Arguments: how (whole or stream), and the prompt.
import { readFile } from "node:fs/promises";
import OpenAI from "openai";

const [how, prompt] = process.argv.slice(2);
const runner = new OpenAI().chat.completions.runTools({
  model: process.env.MODEL,
  stream: how === "stream",
  messages: [{ role: "user", content: prompt }],
  tools: [
    {
      type: "function",
      function: {
        name: "read_file",
        description: "Reads a text file.",
        parse: JSON.parse,
        function: ({ path }) => readFile(path, "utf8"),
        parameters: {
          type: "object",
          properties: { path: { type: "string", description: "Where the file is" } },
          required: ["path"],
        },
      },
    },
  ],
});
process.stdout.write(await runner.finalContent());
