/** A JSON value, such as the arguments of a call. */
type Json = unknown;

type Writing = {
  /** Formats a property name. */
  name: (name: string) => string;
  scalar: (value: Json) => string;
};

/** Formats a JSON value as a JavaScript and TypeScript expression. */
export function scriptLiteral(value: Json, indent = ''): string {
  return literal(value, scriptWriting, indent);
}

/** Formats a JSON value as a Python 3 expression. */
export function pythonLiteral(value: Json, indent = ''): string {
  return literal(value, pythonWriting, indent);
}

const scriptWriting: Writing = {
  // Without brackets, `__proto__` would set the prototype (ECMA-262, B.3.1).
  name: (name) => (name === '__proto__' ? '["__proto__"]' : JSON.stringify(name)),
  scalar: (value) => JSON.stringify(value),
};

const pythonWords = new Map<Json, string>([
  [true, 'True'],
  [false, 'False'],
  [null, 'None'],
]);

const pythonWriting: Writing = {
  name: (name) => JSON.stringify(name),
  // JSON string escapes are also valid in Python strings.
  scalar: (value) => pythonWords.get(value) ?? JSON.stringify(value),
};

/** Maximum length of a list or object that is written on one line, in characters. */
const lineLength = 60;

function literal(value: Json, writing: Writing, indent: string): string {
  if (typeof value !== 'object' || value === null || isRaw(value)) return writing.scalar(value);
  const inner = `${indent}  `;
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  const entries = Array.isArray(value)
    ? value.map((item) => literal(item, writing, inner))
    : Object.entries(value).map(([name, item]) => `${writing.name(name)}: ${literal(item, writing, inner)}`);
  const line = `${open}${entries.join(', ')}${close}`;
  if (line.length <= lineLength && !line.includes('\n')) return line;
  return `${open}\n${entries.map((entry) => `${inner}${entry},\n`).join('')}${indent}${close}`;
}

/** Returns true for a number with its exact digits (`JSON.rawJSON`). */
function isRaw(value: object): boolean {
  return 'rawJSON' in value && Object.isFrozen(value) && Object.getPrototypeOf(value) === null;
}

/** Quotes a text as one word of a POSIX shell (IEEE 1003.1, 2.2.2). A word cannot contain the character NUL. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Maximum bytes of a word. Linux limits each program argument to 128 KiB (execve(2)). */
const mostBytes = 100_000;

/** Returns true if a text can be a program argument. */
export function fitsCommandLine(text: string): boolean {
  return text.length <= mostBytes && !text.includes('\0') && byteLength(text) <= mostBytes;
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}
