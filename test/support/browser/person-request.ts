import type { Json, TestToolhost } from '../toolhost/toolhost.ts';

/** Sends a REST API request the way a dashboard page does, in a session from `createPersonSession`. */
export async function personRequest(
  toolhost: TestToolhost,
  session: string,
  method: string,
  path: string,
  body?: Json,
): Promise<{ status: number; body: Json }> {
  const response = await fetch(`${toolhost.url}/api/v1${path}`, {
    method,
    headers: {
      cookie: `toolhost-session=${session}`,
      origin: toolhost.url,
      'sec-fetch-site': 'same-origin',
      'content-type': 'application/json',
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Json };
}
