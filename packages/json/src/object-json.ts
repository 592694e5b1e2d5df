import { bodyLimits } from './body-limits.ts';
import { getBodyProblem, scanJson } from './json-scan.ts';

/** Returns true for JSON text of an object within the limits of a body, in one pass over its bytes. */
export function isJsonObjectText(text: string): boolean {
  if (!text.trimStart().startsWith('{')) return false;
  const scan = scanJson(Buffer.from(text), bodyLimits.depth);
  return scan !== undefined && getBodyProblem(scan, bodyLimits) === undefined;
}
