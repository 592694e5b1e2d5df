import { bodyLimits } from './body-limits.ts';
import { bodyProblem, scanJson } from './json-scan.ts';

/** Returns true for JSON text of an object within the limits of a body, in one pass over its bytes. */
export function isObjectJson(text: string): boolean {
  if (!text.trimStart().startsWith('{')) return false;
  const scan = scanJson(Buffer.from(text), bodyLimits.depth);
  return scan !== undefined && bodyProblem(scan, bodyLimits) === undefined;
}
