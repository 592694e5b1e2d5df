import { note } from '../print/print.ts';
import type { LoginPerson } from './log-in.ts';
import { openBrowser } from './open-browser.ts';

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
