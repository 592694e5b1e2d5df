import { spawn } from 'node:child_process';

/** Programs that open a URL, by platform. URLs are never passed to a shell. */
const browserCommands: { [platform: string]: readonly [string, ...string[]] } = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

/** Returns the command that opens a URL in a browser, or undefined if there is no display. */
function getBrowserCommand({ env, platform }: NodeJS.Process): readonly string[] | undefined {
  if (env.BROWSER) return [env.BROWSER];
  if (browserCommands[platform]) return browserCommands[platform];
  return env.DISPLAY || env.WAYLAND_DISPLAY ? ['xdg-open'] : undefined;
}

/** Tries to open an http or https URL in the browser. Returns false if there is no browser. */
export function openBrowser(url: string): boolean {
  const [program, ...args] = getBrowserCommand(process) ?? [];
  if (program === undefined || !/^https?:\/\//.test(url)) return false;
  const child = spawn(program, [...args, url], { stdio: 'ignore', detached: true });
  // The URL was printed, so the user can continue without this browser.
  child.on('error', () => undefined);
  child.unref();
  return true;
}
