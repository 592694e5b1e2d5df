import { setTimeout as sleep } from 'node:timers/promises';
import type { Target } from './load.ts';

const maxAttempts = 20;
const pauseMs = 500;

/** Sends a request once and returns its successful response. Retries while the service is overloaded. */
export async function post({ url, headers, body }: Target): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(url, { method: 'POST', headers, body });
    const text = await response.text();
    if (response.status === 200 && !text.includes('"isError":true')) return text;
    if (response.status !== 503 || attempt === maxAttempts)
      throw new Error(`${url}: ${response.status} ${text.slice(0, 500)}`);
    await sleep(pauseMs);
  }
}
