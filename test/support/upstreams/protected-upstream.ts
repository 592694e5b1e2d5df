import type { HonestProvider } from '../oauth/honest-provider.ts';
import { type RecordedRequest, startRecordingUpstream } from './recording-upstream.ts';

/**
 * A received token of the provider. `location` is `authorization: Bearer *`, `x-api-key: *`, or `?key=*`, by its type.
 */
export type PresentedToken = { location: string; token: string; isLive: boolean };

/** An API that accepts only live access tokens of one provider. */
export type ProtectedUpstream = {
  readonly url: string;
  readonly port: number;
  /** All requests so far, with or without a credential. */
  readonly requests: readonly RecordedRequest[];
  /** Removes and returns the tokens presented since the last call. */
  take(): PresentedToken[];
  close(): Promise<void>;
};

function findTokenLocations({ url, headers }: RecordedRequest, token: string): string[] {
  const query = [...new URL(url, 'http://upstream').searchParams].map(([name, value]) => `?${name}=${value}`);
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [...query, ...fields].filter((field) => field.includes(token)).map((field) => field.replace(token, '*'));
}

export async function startProtectedUpstream(provider: HonestProvider): Promise<ProtectedUpstream> {
  const upstream = await startRecordingUpstream();
  const presented: PresentedToken[] = [];
  upstream.on('*', async (request) => {
    const presentedTokens = provider.issued.flatMap((token) =>
      findTokenLocations(request, token).map((location) => ({ location, token })),
    );
    const [credential] = presentedTokens;
    const person = credential && presentedTokens.length === 1 ? await provider.getAccount(credential.token) : undefined;
    presented.push(...presentedTokens.map((one) => ({ ...one, isLive: person !== undefined })));
    if (person === undefined) return { status: 401, headers: { 'www-authenticate': 'Bearer error="invalid_token"' } };
    return { body: { person, item: decodeURIComponent(new URL(request.url, 'http://upstream').pathname.slice(1)) } };
  });
  return {
    url: upstream.url,
    port: upstream.port,
    requests: upstream.requests,
    take: () => presented.splice(0),
    close: upstream.close,
  };
}
