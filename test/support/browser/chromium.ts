import { type Browser, type BrowserContext, chromium } from 'playwright-core';
import { ensureProgram } from './ensure-program.ts';

/** Paths of Chromium or Chrome. The first that exists is used. */
const chromiumPaths: [string, ...string[]] = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];
const chromiumFlags = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

let sharedBrowser: Promise<Browser> | undefined;

/**
 * Launches the system's Chromium in headless mode, because a download by npm does not work on every machine. It starts
 * once per process and stops with it. `close` closes only the contexts that were created with the returned browser.
 */
export async function launchChromium(): Promise<Browser> {
  sharedBrowser ??= ensureProgram(chromiumPaths, 'chromium').then((executablePath) =>
    chromium.launch({ executablePath, headless: true, chromiumSandbox: false, args: chromiumFlags }),
  );
  const browser = await sharedBrowser;
  const contexts: BrowserContext[] = [];
  const scopedBrowser: Browser = Object.create(browser);
  scopedBrowser.newContext = async (options) => {
    const context = await browser.newContext(options);
    contexts.push(context);
    return context;
  };
  scopedBrowser.newPage = async (options) => (await scopedBrowser.newContext(options)).newPage();
  scopedBrowser.close = async () => void (await Promise.all(contexts.splice(0).map((context) => context.close())));
  return scopedBrowser;
}

/** Stops the browser, for a script whose process ends with its work. */
export async function stopChromium(): Promise<void> {
  const browser = await sharedBrowser;
  sharedBrowser = undefined;
  await browser?.close();
}
