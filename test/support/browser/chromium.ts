import { type Browser, type BrowserContext, chromium } from 'playwright-core';
import { needProgram } from './debian-program.ts';

/** Paths of Chromium or Chrome. The first that exists is used. */
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
 * Launches the system's Chromium in headless mode, because a download by npm does not work on every machine. It starts
 * once per process and stops with it. `close` closes only the contexts that were created with the returned browser.
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
