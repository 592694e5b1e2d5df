/** A JSON value, such as the arguments of a call. */
type Json = unknown;

type LiteralSyntax = {
  /** Formats a property name. */
  name: (name: string) => string;
  scalar: (value: Json) => string;
};

/** Formats a JSON value as a JavaScript and TypeScript expression. */
export function toScriptLiteral(value: Json, indent = ''): string {
  return formatLiteral(value, scriptSyntax, indent);
}

/** Formats a JSON value as a Python 3 expression. */
export function toPythonLiteral(value: Json, indent = ''): string {
  return formatLiteral(value, pythonSyntax, indent);
}

const scriptSyntax: LiteralSyntax = {
  // Without brackets, `__proto__` would set the prototype (ECMA-262, B.3.1).
  name: (name) => (name === '__proto__' ? '["__proto__"]' : JSON.stringify(name)),
  scalar: (value) => JSON.stringify(value),
};

const pythonKeywords = new Map<Json, string>([
  [true, 'True'],
  [false, 'False'],
  [null, 'None'],
]);

const pythonSyntax: LiteralSyntax = {
  name: (name) => JSON.stringify(name),
  // JSON string escapes are also valid in Python strings.
  scalar: (value) => pythonKeywords.get(value) ?? JSON.stringify(value),
};

/** Maximum length of a list or object that is written on one line, in characters. */
const lineLength = 60;

function formatLiteral(value: Json, syntax: LiteralSyntax, indent: string): string {
  if (typeof value !== 'object' || value === null || isRaw(value)) return syntax.scalar(value);
  const inner = `${indent}  `;
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  const entries = Array.isArray(value)
    ? value.map((item) => formatLiteral(item, syntax, inner))
    : Object.entries(value).map(([name, item]) => `${syntax.name(name)}: ${formatLiteral(item, syntax, inner)}`);
  const line = `${open}${entries.join(', ')}${close}`;
  if (line.length <= lineLength && !line.includes('\n')) return line;
  return `${open}\n${entries.map((entry) => `${inner}${entry},\n`).join('')}${indent}${close}`;
}

/** Returns true for a number with its exact digits (`JSON.rawJSON`). */
function isRaw(value: object): boolean {
  return 'rawJSON' in value && Object.isFrozen(value) && Object.getPrototypeOf(value) === null;
}

/** Quotes a text as one word of a POSIX shell (IEEE 1003.1, 2.2.2). A word cannot contain the character NUL. */
export function quoteShellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Maximum bytes of a word. Linux limits each program argument to 128 KiB (execve(2)). */
const maxBytes = 100_000;

/** Returns true if a text can be a program argument. */
export function fitsCommandLine(text: string): boolean {
  return text.length <= maxBytes && !text.includes('\0') && getByteLength(text) <= maxBytes;
}

function getByteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}
