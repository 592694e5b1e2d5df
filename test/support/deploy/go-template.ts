import { stringify } from 'yaml';

/**
 * Implements the subset of Go templates and Helm functions that our chart uses, so tests can render the chart without
 * Helm. Anything unknown is an error.
 */
type Node = string | { action: string; body: Node[]; elseBody: Node[] };
type Scope = { dot: unknown; variables: Readonly<Record<string, unknown>> };
type Definitions = Map<string, Node[]>;

/** Parses a template file. Adds its definitions to `definitions` and returns the remaining nodes. */
export function parseTemplate(text: string, definitions: Definitions = new Map()): Node[] {
  const trimmed = text.replaceAll(/\s*\{\{-/g, '{{').replaceAll(/-\}\}\s*/g, '}}');
  const tokens = trimmed.split(/(\{\{.*?\}\})/s);
  const nodes = parseNodes(tokens, definitions);
  if (tokens.length > 0) throw new Error(`unexpected end before ${tokens[0]}`);
  return nodes;
}

function parseNodes(tokens: string[], definitions: Definitions, ends: readonly string[] = []): Node[] {
  const nodes: Node[] = [];
  while (tokens.length > 0) {
    const token = tokens[0] ?? '';
    const action = /^\{\{(.*)\}\}$/s.exec(token)?.[1]?.trim();
    if (action !== undefined && ends.includes(action)) return nodes;
    tokens.shift();
    if (action === undefined) nodes.push(token);
    else if (/^(if|with|range|define) /.test(action)) {
      const body = parseNodes(tokens, definitions, ['end', 'else']);
      const elseBody = tokens.shift() === '{{else}}' ? parseNodes(tokens, definitions, ['end']) : [];
      if (elseBody.length > 0) tokens.shift();
      if (action.startsWith('define ')) definitions.set(JSON.parse(action.slice('define '.length)) as string, body);
      else nodes.push({ action, body, elseBody });
    } else nodes.push({ action, body: [], elseBody: [] });
  }
  if (ends.length > 0) throw new Error('missing end');
  return nodes;
}

export function render(nodes: readonly Node[], data: unknown, definitions: Definitions): string {
  return renderNodes(nodes, { dot: data, variables: { $: data } }, definitions);
}

function renderNodes(nodes: readonly Node[], scope: Scope, definitions: Definitions): string {
  return nodes.map((node) => (typeof node === 'string' ? node : renderAction(node, scope, definitions))).join('');
}

function renderAction(node: Exclude<Node, string>, scope: Scope, definitions: Definitions): string {
  const { action, body, elseBody } = node;
  const [, word = '', rest = ''] = /^(if|with|range)? ?(.*)$/s.exec(action) ?? [];
  if (word === 'range') {
    const [, key = '', value = '', list = ''] = /^\$(\w+), \$(\w+) := (.*)$/.exec(rest) ?? [];
    const entries = Object.entries(evaluate(list, scope, definitions) as object).toSorted(([a], [b]) =>
      a < b ? -1 : 1,
    );
    return entries
      .map(([name, each]) => ({ dot: each, variables: { ...scope.variables, [`$${key}`]: name, [`$${value}`]: each } }))
      .map((inner) => renderNodes(body, inner, definitions))
      .join('');
  }
  const result = evaluate(rest, scope, definitions);
  if (word === '') return String(result);
  if (isEmptyValue(result)) return renderNodes(elseBody, scope, definitions);
  return renderNodes(body, word === 'with' ? { ...scope, dot: result } : scope, definitions);
}

const isEmptyValue = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === '' ||
  value === false ||
  value === 0 ||
  (typeof value === 'object' && Object.keys(value).length === 0);

/** Evaluates a pipeline: the result of each command is the last argument of the next one. */
function evaluate(pipeline: string, scope: Scope, definitions: Definitions): unknown {
  let result: unknown[] = [];
  for (const command of pipeline.split(/ \| /)) {
    const words = command.match(/"[^"]*"|\([^()]*\)|\S+/g) ?? [];
    const [first = '', ...others] = words;
    const evaluateWord = (word: string) => evaluateOperand(word, scope, definitions);
    result = /^["$.(\d]/.test(first)
      ? [evaluateWord(first)]
      : [callFunction(first, [...others.map(evaluateWord), ...result], scope, definitions)];
  }
  return result[0];
}

function evaluateOperand(word: string, scope: Scope, definitions: Definitions): unknown {
  if (word.startsWith('(')) return evaluate(word.slice(1, -1), scope, definitions);
  if (/^["\d]/.test(word)) return JSON.parse(word);
  const [, base = '', path = ''] = /^(\$\w*)?(.*)$/.exec(word) ?? [];
  const start = base === '' ? scope.dot : scope.variables[base];
  const names = path.split('.').filter((name) => name !== '');
  return names.reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], start);
}

function callFunction(name: string, args: unknown[], scope: Scope, definitions: Definitions): unknown {
  const [first, second] = args;
  const indented = (text: unknown, spaces: unknown) => String(text).replaceAll(/^(?=.)/gm, ' '.repeat(Number(spaces)));
  switch (name) {
    case 'include':
      return render(definitions.get(String(first)) ?? fail(`no template ${first}`), second, definitions);
    case 'nindent':
      return `\n${indented(second, first)}`;
    case 'toYaml':
      return stringify(first).trimEnd();
    case 'quote':
      return JSON.stringify(String(first));
    case 'default':
      return isEmptyValue(second) ? first : second;
    case 'not':
      return isEmptyValue(first);
    case 'trimPrefix':
      return String(second).startsWith(String(first)) ? String(second).slice(String(first).length) : second;
    case 'regexFind':
      return new RegExp(String(first)).exec(String(second))?.[0] ?? '';
    default:
      return fail(`the tests do not implement the Helm function ${name} (with ${JSON.stringify(scope.dot)})`);
  }
}

function fail(message: string): never {
  throw new Error(message);
}
