import { distance } from 'fastest-levenshtein';

/**
 * Arguments that clients add to calls of every tool regardless of its schema: `wait_for_previous` by Gemini CLI; fields
 * of its own chat and tool calls by n8n (n8n issues 21500 and 22787); `random_string` by Cursor for a tool without
 * arguments.
 */
const clientArguments: ReadonlySet<string> = new Set([
  'wait_for_previous',
  'sessionId',
  'action',
  'chatInput',
  'tool',
  'toolCallId',
  'random_string',
]);

/** Maximum number of name comparisons per call. */
const maxCompared = 2000;
const maxNameLength = 64;
/** Minimum lengths at which one and two edits count as a misspelling of a declared name. */
const oneEditFrom = 5;
const twoEditsFrom = 8;

/**
 * Returns the names of undeclared arguments to drop from a call: those that clients are known to add and, if the call
 * only reads, every name that is not close to a declared one. Any other undeclared argument is refused, because a
 * filter that is missing from a write or a deletion widens it.
 */
export function addedArguments(given: object, declared: readonly string[], isReadOnly: boolean): string[] {
  const known = new Set(declared);
  const undeclared = Object.keys(given).filter((name) => !known.has(name));
  if (undeclared.length === 0) return undeclared;
  const isComparable = isReadOnly && undeclared.length * declared.length <= maxCompared;
  return undeclared.filter(
    (name) => clientArguments.has(name) || (isComparable && !declared.some((other) => isNearMiss(name, other))),
  );
}

function isNearMiss(name: string, declared: string): boolean {
  const [one, other] = [folded(name), folded(declared)];
  if (one === other) return true;
  const shorter = Math.min(one.length, other.length);
  if (Math.max(one.length, other.length) > maxNameLength + 2) return false;
  const maxEdits = shorter >= twoEditsFrom ? 2 : shorter >= oneEditFrom ? 1 : 0;
  return maxEdits > 0 && Math.abs(one.length - other.length) <= maxEdits && distance(one, other) <= maxEdits;
}

/** Normalizes a name: removes separators and lowers its case. */
function folded(name: string): string {
  return name
    .slice(0, 2 * maxNameLength)
    .replaceAll(/[\s_.\-[\]]+/g, '')
    .toLowerCase();
}

const maxListed = 10;

/** Returns the result line that names the dropped arguments, or no lines if nothing was dropped. */
export function leftOutText(names: readonly string[], why: string): string[] {
  if (names.length === 0) return [];
  const listed = names.slice(0, maxListed).map((name) => name.slice(0, maxNameLength).toWellFormed());
  const more = names.length > maxListed ? ` and ${names.length - maxListed} more` : '';
  return [`Ignored arguments: ${listed.join(', ')}${more} (${why}).`];
}
