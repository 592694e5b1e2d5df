import { type Browser, type BrowserContext, chromium } from 'playwright-core';
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

let shared: Promise<Browser> | undefined;

/**
 * The system's own Chromium, without a window; a browser that npm would download cannot be had on every machine. It is
 * started once in a process and ends with it; `close` closes the profiles that were made with what this returns.
 */
export async function launchChromium(): Promise<Browser> {
  shared ??= needProgram(knownPaths, 'chromium').then((executablePath) =>
    chromium.launch({ executablePath, headless: true, chromiumSandbox: false, args: quiet }),
  );
  const browser = await shared;
  const contexts: BrowserContext[] = [];
  const own: Browser = Object.create(browser);
  own.newContext = async (options) => {
    const context = await browser.newContext(options);
    contexts.push(context);
    return context;
  };
  own.newPage = async (options) => (await own.newContext(options)).newPage();
  own.close = async () => void (await Promise.all(contexts.splice(0).map((context) => context.close())));
  return own;
}
