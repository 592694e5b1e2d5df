import { createHmac } from 'node:crypto';
import type { HttpClient } from './http-client.ts';

/** URL of a webhook, and the secret that signs it: `whsec_` and base64. */
export type WebhookTarget = { url: string; secret: string };

export type WebhookMessage = {
  workspaceId: string;
  /** Same ID for each attempt, so that a receiver can detect repeats. */
  id: string;
  body: string;
  /** Epoch ms. */
  at: number;
};

/** Prefix of a secret, as defined by Standard Webhooks. */
export const webhookSecretPrefix = 'whsec_';

const timeoutMs = 10_000;
/** Maximum response size. The response is not used, and a longer one fails. */
const limitBytes = 64 * 1024;

/**
 * Sends a webhook, signed according to Standard Webhooks 1.0.0. Returns the response status.
 * @throws OutboundError
 */
export async function sendWebhook(
  http: Pick<HttpClient, 'send'>,
  { url, secret }: WebhookTarget,
  { workspaceId, id, body, at: timestamp }: WebhookMessage,
  userAgent: string,
): Promise<number> {
  const target = new URL(url);
  const seconds = String(Math.floor(timestamp / 1000));
  const key = Buffer.from(secret.slice(webhookSecretPrefix.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64');
  const headers = {
    'Content-Type': 'application/json',
    'User-Agent': userAgent,
    'webhook-id': id,
    'webhook-timestamp': seconds,
    'webhook-signature': `v1,${signature}`,
  };
  const { status } = await http.send({
    workspaceId,
    origin: target.origin,
    credentialHash: undefined,
    path: target.pathname + target.search,
    method: 'POST',
    headers: Object.entries(headers).flat(),
    body,
    timeoutMs,
    limitBytes,
  });
  return status;
}
