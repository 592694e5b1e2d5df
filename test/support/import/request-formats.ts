import type { Json } from '../toolhost/toolhost.ts';

/** A request. `body` is a JSON value or a string, and `form` contains the fields of a form. */
export type ExampleRequest = {
  method: string;
  url: string;
  headers?: Record<string, string>;
  body?: unknown;
  form?: Json;
  name?: string;
};

/** Writers of the same requests as a Postman collection, a browser recording (HAR), and curl commands. */
export const requestWriters: Record<string, (requests: readonly ExampleRequest[]) => string> = {
  Postman: (requests) =>
    JSON.stringify({
      info: { name: 'Calls' },
      item: requests.map(({ method, url, headers = {}, body, form, name }) => ({
        name,
        request: {
          method,
          url: { raw: url },
          header: Object.entries(headers).map(([key, value]) => ({ key, value })),
          ...(body !== undefined && { body: { mode: 'raw', raw: toBodyText(body) } }),
          ...(form && {
            body: { mode: 'urlencoded', urlencoded: Object.entries(form).map(([key, value]) => ({ key, value })) },
          }),
        },
      })),
    }),
  HAR: (requests) =>
    JSON.stringify({
      log: {
        entries: requests.map(({ method, url, headers = {}, body, form }) => ({
          request: {
            method,
            url,
            headers: Object.entries(headers).map(([name, value]) => ({ name, value })),
            ...(body !== undefined && {
              postData: { mimeType: headers['Content-Type'] ?? 'application/json', text: toBodyText(body) },
            }),
            ...(form && {
              postData: {
                mimeType: 'application/x-www-form-urlencoded',
                params: Object.entries(form).map(([name, value]) => ({ name, value })),
              },
            }),
          },
          response: { content: { mimeType: 'application/json' } },
        })),
      },
    }),
  curl: (requests) =>
    requests
      .map(({ method, url, headers = {}, body, form }) =>
        [
          `curl -X ${method} '${url}'`,
          ...Object.entries(headers).map(([name, value]) => `-H '${name}: ${value}'`),
          ...(body === undefined ? [] : [`--data-raw '${toBodyText(body)}'`]),
          ...Object.entries(form ?? {}).map(([name, value]) => `--data-urlencode '${name}=${value}'`),
        ].join(' '),
      )
      .join('\n'),
};

const toBodyText = (body: unknown) => (typeof body === 'string' ? body : JSON.stringify(body));
