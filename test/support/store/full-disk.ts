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

/** A folder on a disk that a test can fill for a process that writes there. */
export type Disk = {
  folder: string;
  fill(pid: number): void;
  empty(pid: number): void;
  remove(): void;
};

const createFolder = () => mkdtempSync(join(tmpdir(), 'toolhost-disk-'));

function mountMemory(folder: string, options: string): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder], { stdio: 'ignore' });
}

function unmount(folder: string): void {
  execFileSync('umount', ['--lazy', folder]);
  rmdirSync(folder);
}

/**
 * Limits the file size of the process to one page, so that every write to the database fails as on a full disk. Works
 * on every machine. The limit is a soft one, which its owner may raise again.
 */
export function createLimitedDisk(): Disk {
  const folder = createFolder();
  const limit = (pid: number, bytes: string) => execFileSync('prlimit', [`--pid=${pid}`, `--fsize=${bytes}:`]);
  return {
    folder,
    fill: (pid) => void limit(pid, '4096'),
    empty: (pid) => void limit(pid, 'unlimited'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Returns false once the disk is full. */
function writePage(file: number, page: Buffer): boolean {
  try {
    return writeSync(file, page) > 0;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false;
    throw error;
  }
}

/** Mounts a file system of 4 MB. Returns undefined if this user may not mount one. */
export function mountSmallDisk(): Disk | undefined {
  const folder = createFolder();
  try {
    mountMemory(folder, 'size=4m');
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
      // The service writes at the same time, so the free space cannot be computed in advance.
      while (writePage(file, page));
      closeSync(file);
    },
    empty: () => unlinkSync(ballast),
    remove: () => unmount(folder),
  };
}

/**
 * Creates an empty folder that this process cannot write to: a read-only file system if the user may mount one,
 * otherwise a read-only mode.
 */
export function createReadOnlyFolder(): { folder: string; remove(): void } {
  const folder = createFolder();
  if (process.getuid?.() !== 0) {
    chmodSync(folder, 0o500);
    return { folder, remove: () => rmdirSync(folder) };
  }
  try {
    mountMemory(folder, 'ro,size=1m');
  } catch {
    // No user can create a file there, not even root.
    rmdirSync(folder);
    return { folder: '/proc/self', remove: () => undefined };
  }
  return { folder, remove: () => unmount(folder) };
}
