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
/** Minimum lengths of names in characters at which one and two edits count as a misspelling of a declared name. */
const minLengthForOneEdit = 5;
const minLengthForTwoEdits = 8;

/**
 * Returns the names of undeclared arguments to drop from a call: those that clients are known to add and, if the call
 * only reads, every name that is not close to a declared one. Other undeclared arguments stay and are refused later: a
 * write or a deletion without one of its filters would change too much.
 */
export function findIgnoredArguments(args: object, declared: readonly string[], isReadOnly: boolean): string[] {
  const declaredNames = new Set(declared);
  const undeclared = Object.keys(args).filter((name) => !declaredNames.has(name));
  if (undeclared.length === 0) return undeclared;
  const canCompare = isReadOnly && undeclared.length * declared.length <= maxCompared;
  return undeclared.filter(
    (name) =>
      clientArguments.has(name) || (canCompare && !declared.some((declaredName) => isNearMiss(name, declaredName))),
  );
}

function isNearMiss(name: string, declared: string): boolean {
  const [normalizedName, normalizedDeclared] = [normalizeName(name), normalizeName(declared)];
  if (normalizedName === normalizedDeclared) return true;
  const shorterLength = Math.min(normalizedName.length, normalizedDeclared.length);
  if (Math.max(normalizedName.length, normalizedDeclared.length) > maxNameLength + 2) return false;
  const maxEdits = shorterLength >= minLengthForTwoEdits ? 2 : shorterLength >= minLengthForOneEdit ? 1 : 0;
  return (
    maxEdits > 0 &&
    Math.abs(normalizedName.length - normalizedDeclared.length) <= maxEdits &&
    distance(normalizedName, normalizedDeclared) <= maxEdits
  );
}

/** Normalizes a name: removes separators and lowers its case. */
function normalizeName(name: string): string {
  return name
    .slice(0, 2 * maxNameLength)
    .replaceAll(/[\s_.\-[\]]+/g, '')
    .toLowerCase();
}

const maxListed = 10;

/** Formats the result line that names the dropped arguments. Returns no line if nothing was dropped. */
export function formatIgnoredArguments(names: readonly string[], reason: string): string[] {
  if (names.length === 0) return [];
  const listedNames = names.slice(0, maxListed).map((name) => name.slice(0, maxNameLength).toWellFormed());
  const more = names.length > maxListed ? ` and ${names.length - maxListed} more` : '';
  return [`Ignored arguments: ${listedNames.join(', ')}${more} (${reason}).`];
}
