import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  mkdtempSync,
  openSync,
  rmdirSync,
  rmSync,
  statfsSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder whose disk can be full for a process that writes there. */
export type Disk = {
  folder: string;
  fill(pid: number): void;
  empty(pid: number): void;
  remove(): void;
};

const newFolder = () => mkdtempSync(join(tmpdir(), 'toolhost-disk-'));

/**
 * Works everywhere: files of the process may not grow beyond their first page, so that every write to the database fails
 * as if the disk were full. The limit is a soft one, which its owner may lift again.
 */
export function limitedDisk(): Disk {
  const folder = newFolder();
  const limit = (pid: number, bytes: string) => execFileSync('prlimit', [`--pid=${pid}`, `--fsize=${bytes}:`]);
  return {
    folder,
    fill: (pid) => void limit(pid, '4096'),
    empty: (pid) => void limit(pid, 'unlimited'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** False once the disk is full. */
function hasWritten(file: number, page: Buffer): boolean {
  try {
    return writeSync(file, page) > 0;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false;
    throw error;
  }
}

/** A file system of a few megabytes; undefined where this user may not mount one. */
export function smallDisk(): Disk | undefined {
  const folder = newFolder();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    rmdirSync(folder);
    return undefined;
  }
  const ballast = join(folder, 'ballast');
  return {
    folder,
    fill() {
      const file = openSync(ballast, 'w');
      const page = Buffer.alloc(statfsSync(folder).bsize);
      // The service writes at the same time, so the room that is left cannot be counted before.
      while (hasWritten(file, page));
      closeSync(file);
    },
    empty: () => unlinkSync(ballast),
    remove() {
      execFileSync('umount', ['--lazy', folder]);
      rmdirSync(folder);
    },
  };
}

/** An empty folder that this process cannot write into: a file system mounted so where the user may, else by its mode. */
export function readOnlyFolder(): { folder: string; remove(): void } {
  const folder = newFolder();
  if (process.getuid?.() !== 0) {
    chmodSync(folder, 0o500);
    return { folder, remove: () => rmdirSync(folder) };
  }
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro,size=1m', 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    // No user can make a file there, root included.
    rmdirSync(folder);
    return { folder: '/proc/self', remove: () => undefined };
  }
  return {
    folder,
    remove() {
      execFileSync('umount', ['--lazy', folder]);
      rmdirSync(folder);
    },
  };
}
