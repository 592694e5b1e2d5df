import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createBrowser } from '../browser/browser.ts';
import { eventually } from '../eventually.ts';
import { logIn } from '../oauth/log-in.ts';
import { listenLocally } from '../upstreams/local-server.ts';

/** A person whose browser is a program that agents start with a URL. */
export type Person = {
  readonly name: string;
  /** Writes the program into a folder for PATH, under the names that agents use to find a browser. Returns its path. */
  installBrowser(folder: string): Promise<string>;
  /** Errors of the browser, for a failure message. */
  readonly failures: readonly string[];
  close(): Promise<void>;
};

/**
 * Starts a person who logs in wherever the browser is sent. The redirect goes to the agent that is waiting for it.
 * @param completeLogin does the person's steps, and returns the redirect to the agent
 */
export async function startPerson(
  name: string,
  completeLogin = (address: string): Promise<URL> => logIn(createBrowser(), address, name),
): Promise<Person> {
  const failures: string[] = [];
  const openUrl = async (address: string) => {
    const callbackUrl = await completeLogin(address);
    // Some agents open the browser before they listen: a person takes longer than this.
    const response = await eventually(() => fetch(callbackUrl));
    if (!response.ok) failures.push(`the agent answered ${response.status}: ${await response.text()}`);
  };
  const server = createServer(async (request, response) => {
    const address = await text(request);
    response.end();
    await openUrl(address).catch((error: unknown) => failures.push(`${address}: ${error}`));
  });
  const { url, close } = await listenLocally(server);
  return {
    name,
    failures,
    async installBrowser(folder) {
      const program = `#!${process.execPath}\nawait fetch('${url}', { method: 'POST', body: process.argv.find((word) => word.startsWith('http')) });\n`;
      const files = [join(folder, 'xdg-open'), join(folder, 'open')] as const;
      for (const file of files) await writeFile(file, program, { mode: 0o755 });
      return files[0];
    },
    close,
  };
}
