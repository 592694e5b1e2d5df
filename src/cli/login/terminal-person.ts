import { spawn } from 'node:child_process';
import { note } from '../print/print.ts';
import type { LoginPerson } from './log-in.ts';

/** The person at the terminal, who logs in in a browser or pastes the address that the login led to. */
export function terminalPerson(opensBrowser: boolean): LoginPerson {
  const canPaste = !opensBrowser || process.stdin.isTTY;
  return {
    show(address) {
      const opened = opensBrowser && openBrowser(address, process.env, process.platform);
      note(
        `${opened ? 'Log in in the browser that opens, or open' : 'To log in, open'} this address:\n\n  ${address}\n`,
      );
      if (canPaste) note('If the browser is on another machine, paste the address here that it shows at the end.');
    },
    input: canPaste ? process.stdin : undefined,
    note,
  };
}

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
function openBrowser(url: string, env: NodeJS.ProcessEnv, platform: NodeJS.Platform): boolean {
  const [program, ...args] = openerOf(env, platform) ?? [];
  if (program === undefined || !/^https?:\/\//.test(url)) return false;
  const child = spawn(program, [...args, url], { stdio: 'ignore', detached: true });
  // The address was printed, so the person can go on without the browser.
  child.on('error', () => undefined);
  child.unref();
  return true;
}
