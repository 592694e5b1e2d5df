import { distance } from 'fastest-levenshtein';

/**
 * Arguments that clients add to calls of every tool, whatever its schema says: Gemini CLI `wait_for_previous`; n8n the
 * fields of its own chat and of its tool calls (n8n issues 21500 and 22787); Cursor `random_string` for a tool without
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

/** Most comparisons of names for one call. */
const maxCompared = 2000;
const maxNameLength = 64;
/** Shortest names that one and two edits may separate from a declared one. */
const oneEditFrom = 5;
const twoEditsFrom = 8;

/**
 * Names of undeclared arguments that are left out of a call: those that a client is known to add, and in a call that only
 * reads every name that is not a near miss of a declared one. Any other undeclared argument is refused, because a filter
 * that is missing from a write or a deletion widens it.
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

/** A name without case and separators. */
function folded(name: string): string {
  return name
    .slice(0, 2 * maxNameLength)
    .replaceAll(/[\s_.\-[\]]+/g, '')
    .toLowerCase();
}

const maxListed = 10;

/** The line of a result about arguments that were left out of the call; none without such arguments. */
export function leftOutText(names: readonly string[], why: string): string[] {
  if (names.length === 0) return [];
  const listed = names.slice(0, maxListed).map((name) => name.slice(0, maxNameLength).toWellFormed());
  const more = names.length > maxListed ? ` and ${names.length - maxListed} more` : '';
  return [`Left out of this call: ${listed.join(', ')}${more} (${why}).`];
}
