import { bodyProblem, configurationLimits } from '../../domain/json/body-limits.ts';
import { scanJson } from '../../domain/json/json-scan.ts';

/**
 * Why a configuration, as JSON, is larger than one that may be sent to the service; undefined when it is not. A schema
 * that many operations share is written out in each of their tools, so a short document can give any size.
 */
export function sizeProblem(config: string): string | undefined {
  const { bytes: most, depth } = configurationLimits;
  const text = Buffer.from(config);
  const scan = text.length > most ? undefined : scanJson(text, depth);
  if (scan && bodyProblem(scan, configurationLimits) === undefined) return undefined;
  return `the configuration of the chosen operations is too large (${(text.length / 1024 / 1024).toFixed(1)} MB); allowed: at most ${most / 1024 / 1024} MB, ${configurationLimits.elements} elements and ${configurationLimits.names} names; choose fewer operations, or make several servers of them`;
}
