import { execFileSync } from 'node:child_process';
import { chownSync, copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { BuiltImage } from './image-steps.ts';

/** Copies the files of the Node base image that the program needs: the runtime, `env`, and their libraries. */
function copyBaseImage(root: string): void {
  const programs = { '/usr/local/bin/node': process.execPath, '/usr/bin/env': '/usr/bin/env' };
  for (const [target, program] of Object.entries(programs)) {
    copy(program, join(root, target));
    const output = execFileSync('ldd', [program], { encoding: 'utf8' });
    for (const [library] of output.matchAll(/\/\S+(?= \(0x)/g)) copy(library, join(root, library));
  }
  for (const folder of ['tmp', 'dev', 'proc']) mkdirSync(join(root, folder), { recursive: true });
}

function copy(source: string, target: string): void {
  mkdirSync(dirname(target), { recursive: true });
  if (!existsSync(target)) copyFileSync(source, target);
}

/**
 * Returns a function that builds the command to run a program of an image as a container engine would: the image is the
 * read-only root of the file system, `/tmp` is empty, and the volume belongs to the image's user. The started process is
 * replaced by the program, so signals reach it.
 * @throws Error that says what is missing on this machine
 */
export function createCleanRootCommand(
  image: BuiltImage,
  volume: string,
): (args: readonly string[]) => [string, ...string[]] {
  copyBaseImage(image.root);
  const [user = 0, group = 0] = image.user.split(':').map(Number);
  const prefix = process.getuid?.() === 0 ? [] : ['sudo', '-n'];
  try {
    execFileSync([...prefix, 'unshare'][0] ?? '', [...prefix, 'unshare', '--mount', 'true'].slice(1), {
      stdio: 'pipe',
    });
  } catch (cause) {
    const message =
      'These tests need Linux with unshare (util-linux) and chroot (coreutils), and root or sudo without password.';
    throw new Error(message, { cause });
  }
  if (prefix.length === 0) chownSync(volume, user, group);
  else execFileSync('sudo', ['-n', 'chown', image.user, volume]);
  const [path = ''] = image.volumes;
  // The PATH of a user may lack the folders that contain chroot.
  const script = `
root=$1; volume=$2; shift 2
PATH=$PATH:/usr/sbin:/sbin
mount --bind "$root" "$root"
mount -o remount,ro,bind "$root"
mount -t tmpfs tmpfs "$root/tmp"
mount --bind "$volume" "$root${path}"
mount --rbind /dev "$root/dev"
mount --rbind /proc "$root/proc"
exec chroot --userspec=${image.user} "$root" "$@"`;
  const env = Object.entries(image.env).map(([name, value]) => `${name}=${value}`);
  return (args) => {
    const command = [
      'unshare',
      '--mount',
      'sh',
      '-euc',
      script,
      'sh',
      image.root,
      volume,
      '/usr/bin/env',
      '-i',
      ...env,
      ...args,
    ];
    return [...prefix, ...command] as [string, ...string[]];
  };
}
