// The setting of tools: a list of functions that the model may call.
import { $ } from "./dom.js";
import { formatName } from "./format.js";
import { currentModel } from "./models.js";

const MOST_NAMES = 6; // how many names are shown
// What is sent beside the tools for each choice of calls. For a choice without an entry, no tools are sent.
const CALLS = {
  "": {},
  one: { parallel_tool_calls: false },
  required: { tool_choice: "required" },
  required_one: { tool_choice: "required", parallel_tool_calls: false },
};

// Returns what is wrong with an entry of the list, or "".
function complaint(tool) {
  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isObject(tool) || tool.type !== "function") return 'is no object with "type": "function"';
  if (!isObject(tool.function)) return 'has no "function", an object';
  const { name, parameters } = tool.function;
  if (typeof name !== "string" || name.trim() === "") return 'has no "name" in its "function"';
  return parameters === undefined || isObject(parameters) ? "" : `("${name}") has "parameters" that are no JSON schema`;
}

// Parses the text of the tools. Returns {tools} or {problem}. An empty text means that there are no tools.
export function readTools(text) {
  if (text.trim() === "") return { tools: [] };
  let tools;
  try {
    tools = JSON.parse(text);
  } catch (error) {
    return { problem: `This is no JSON: ${error.message}` };
  }
  if (!Array.isArray(tools)) return { problem: "This is no list: [ … ] is wanted, with a function in each place." };
  const problems = tools.map((tool, i) => complaint(tool) && `Tool ${i + 1} ${complaint(tool)}.`).filter(Boolean);
  const names = tools.map((tool) => tool?.function?.name);
  const twice = names.find((name, i) => name && names.indexOf(name) !== i);
  if (twice) problems.push(`Two tools are called "${twice}".`);
  return problems.length > 0 ? { problem: problems.join("\n") } : { tools };
}

function summary(tools) {
  const names = tools.slice(0, MOST_NAMES).map((tool) => tool.function.name);
  if (tools.length > MOST_NAMES) names.push("…");
  if (tools.length === 0) return "";
  const without = formatName() ? ". An answer with a format other than text makes no calls." : "";
  return `${tools.length} ${tools.length === 1 ? "tool" : "tools"}: ${names.join(", ")}${without}`;
}

const put = (id, text) => {
  $(id).textContent = text;
  $(id).hidden = !text;
};

export function showTools(refusal = "") {
  const { tools = [], problem = refusal } = readTools($("tools").value);
  put("tools-problem", problem);
  put("tools-note", problem ? "" : summary(tools));
  $("tools").ariaInvalid = String(Boolean(problem));
  $("tool_choice").disabled = tools.length === 0;
  const model = currentModel();
  put("tools-model", model?.tool_format === null ? `${model.id} reads no tools, and refuses requests that have some.` : "");
}

export const toolsProblem = () => readTools($("tools").value).problem;

// Returns the request fields of the tools. After a result the model may always answer with text, because a call that is
// demanded each time would never end.
export function toolFields(isBehindResult) {
  const { tools } = readTools($("tools").value);
  const calls = CALLS[$("tool_choice").value];
  if (!tools?.length || !calls) return {};
  const fields = { tools, ...calls };
  if (isBehindResult) delete fields.tool_choice;
  return fields;
}

export function startTools() {
  $("tools").addEventListener("input", () => showTools());
  $("format").addEventListener("change", () => showTools());
  $("model").addEventListener("shown", () => showTools());
  showTools();
}
