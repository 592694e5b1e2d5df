import { dirname } from 'node:path';
import { AppError } from '../../errors.ts';
import { readConfigFile } from '../input/config-file.ts';
import type { MoreReferences } from './secret-values.ts';
import { referenceProblems, type SecretReferences } from './server-files.ts';

/** Reads a file that has the sources of secrets by slug. @throws AppError invalid */
export async function readSecretFile(file: string): Promise<Map<string, MoreReferences>> {
  const content = await readConfigFile(file);
  if (typeof content !== 'object' || content === null || Array.isArray(content))
    throw new AppError('invalid', `${file}: allowed: slugs, each with the sources of its secrets`);
  const entries = Object.entries(content);
  const problems = entries.flatMap(([slug, section]) => referenceProblems(section, slug));
  if (problems.length > 0) throw new AppError('invalid', `${file}: has sources that cannot be used`, { problems });
  const folder = dirname(file);
  return new Map(entries.map(([slug, references]) => [slug, { references: references as SecretReferences, folder }]));
}
