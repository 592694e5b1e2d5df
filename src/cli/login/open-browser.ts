import { spawn } from 'node:child_process';

/** Programs that open an address, by platform. Addresses are never given to a shell. */
const openers: { [platform: string]: readonly [string, ...string[]] } = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

/** The command that opens an address for the person at this machine, or undefined where there is no screen. */
function openerOf(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): readonly string[] | undefined {
  if (env.BROWSER) return [env.BROWSER];
  if (openers[platform]) return openers[platform];
  return env.DISPLAY || env.WAYLAND_DISPLAY ? ['xdg-open'] : undefined;
}

/** Opens an http or https address in the browser, if there is one. Returns whether it was tried. */
export function openBrowser(url: string, env: NodeJS.ProcessEnv, platform: NodeJS.Platform): boolean {
  const [program, ...args] = openerOf(env, platform) ?? [];
  if (program === undefined || !/^https?:\/\//.test(url)) return false;
  const child = spawn(program, [...args, url], { stdio: 'ignore', detached: true });
  // The address was printed, so the person can go on without the browser.
  child.on('error', () => undefined);
  child.unref();
  return true;
}
