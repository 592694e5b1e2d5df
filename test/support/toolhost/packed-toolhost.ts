import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../../files.ts';
import { npm, writeEmptyProject } from '../npm.ts';

/** The package as a user gets it: packed, and installed into an empty folder. */
export type PackedToolhost = {
  /** Folder into which it was installed. */
  folder: string;
  /** File that `npm pack` created. */
  tarball: string;
  program: string;
  /** Folder of the compiled program. */
  lib: string;
  remove(): Promise<void>;
};

export async function packToolhost(): Promise<PackedToolhost> {
  const base = await mkdtemp(join(tmpdir(), 'toolhost-packed-'));
  const folder = join(base, 'empty');
  await mkdir(folder);
  await npm(['pack', '--pack-destination', base], root);
  const [name = ''] = (await readdir(base)).filter((file) => file.endsWith('.tgz'));
  const tarball = join(base, name);
  await writeEmptyProject(folder);
  await npm(['install', '--prefer-offline', tarball], folder);
  return {
    folder,
    tarball,
    lib: join(folder, 'node_modules', 'toolhost', 'lib'),
    program: join(folder, 'node_modules', '.bin', 'toolhost'),
    remove: () => rm(base, { recursive: true, force: true }),
  };
}
