import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { type Browser, chromium } from 'playwright-core';

const debianPath = '/usr/bin/chromium';
/** Where systems keep Chromium or Chrome; the first that is there is used. */
const knownPaths = [
  debianPath,
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];
const quiet = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const installMs = 300_000;

/** Debian's package; a browser that npm would download cannot be had on every machine. */
async function install(): Promise<void> {
  const run = promisify(execFile);
  const options = { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }, timeout: installMs };
  await run('apt-get', ['update'], options);
  const wait = ['-o', 'DPkg::Lock::Timeout=120'];
  await run('apt-get', [...wait, 'install', '-y', '--no-install-recommends', 'chromium'], options);
}

/** The system's own Chromium, without a window. */
export async function launchChromium(): Promise<Browser> {
  let executablePath = knownPaths.find((path) => existsSync(path));
  if (executablePath === undefined) {
    if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) {
      throw new Error(
        `These tests need Chromium or Chrome. Install it, on Debian with "apt-get install chromium", so that one of these files exists: ${knownPaths.join(', ')}`,
      );
    }
    await install();
    executablePath = debianPath;
  }
  return chromium.launch({ executablePath, headless: true, chromiumSandbox: false, args: quiet });
}
