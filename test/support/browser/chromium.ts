import { type Browser, chromium } from 'playwright-core';
import { needProgram } from './debian-program.ts';

/** Paths of Chromium or Chrome; the first that exists is used. */
const knownPaths: [string, ...string[]] = [
  '/usr/bin/chromium',
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

/** The system's own Chromium, without a window; a browser that npm would download cannot be had on every machine. */
export async function launchChromium(): Promise<Browser> {
  const executablePath = await needProgram(knownPaths, 'chromium');
  return chromium.launch({ executablePath, headless: true, chromiumSandbox: false, args: quiet });
}
