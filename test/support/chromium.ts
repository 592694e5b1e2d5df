import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { type Browser, chromium } from 'playwright-core';

const executablePath = '/usr/bin/chromium';
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
  if (!existsSync(executablePath)) {
    if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) {
      throw new Error(`These tests need Chromium at ${executablePath}; on Debian: apt-get install chromium`);
    }
    await install();
  }
  return chromium.launch({ executablePath, headless: true, chromiumSandbox: false, args: quiet });
}
