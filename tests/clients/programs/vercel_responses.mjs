// An agent of the Vercel AI SDK that speaks the Responses API. Arguments: how (whole or stream), and the prompt.
import { readFile } from "node:fs/promises";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const [how, prompt] = process.argv.slice(2);
const provider = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY });
const request = {
  model: provider.responses(process.env.MODEL),
  prompt,
  tools: {
    read_file: tool({
      description: "Reads a text file.",
      inputSchema: z.object({ path: z.string().describe("Where the file is") }),
      execute: ({ path }) => readFile(path, "utf8"),
    }),
  },
  stopWhen: stepCountIs(5),
};
process.stdout.write(how === "whole" ? (await generateText(request)).text : await streamText(request).text);
