import { asText, field, isFields, type JsonFields, listOf } from '../document/lenient.ts';
import type { ApiDescription } from '../model.ts';
import { type DescribedRequest, describeRequests, findHostTitle } from './described-requests.ts';
import { type RequestBody, readBodyText } from './request-bodies.ts';

export function isHar(root: unknown): root is JsonFields {
  return Array.isArray(field(field(root, 'log'), 'entries'));
}

const staticFile = /\.(?:js|mjs|css|map|png|jpe?g|gif|svg|ico|webp|avif|woff2?|ttf|mp4|webm|html?)$/i;

/** Reads a browser recording (HAR 1.2): requests for data, without pages, scripts, and images. */
export function readHar(root: JsonFields): ApiDescription {
  const requests = listOf(field(field(root, 'log'), 'entries')).flatMap((entry, index) => requestOf(entry, index));
  return describeRequests(requests, {
    format: 'HAR',
    version: asText(field(field(root, 'log'), 'version')),
    title: findHostTitle(requests, 'Recording'),
    description: '',
    isRecorded: true,
  });
}

function requestOf(entry: unknown, index: number): DescribedRequest[] {
  const request = field(entry, 'request');
  const url = asText(field(request, 'url'));
  const method = asText(field(request, 'method')).toUpperCase();
  const answered = asText(field(field(field(entry, 'response'), 'content'), 'mimeType'));
  const isPage =
    /^(?:text\/(?:html|css|javascript)|image\/|font\/|video\/|audio\/|application\/(?:x-)?javascript)/i.test(answered);
  if (
    !isFields(request) ||
    !/^https?:/i.test(url) ||
    method === 'OPTIONS' ||
    isPage ||
    staticFile.test(url.split(/[?#]/)[0] ?? '')
  )
    return [];
  const headers = listOf(request.headers).map((header): [string, string] => [
    asText(field(header, 'name')),
    asText(field(header, 'value')),
  ]);
  // Browser cookies belong to a person, not to a tool.
  const kept = headers.filter(([name]) => name !== '' && !/^cookie$/i.test(name));
  return [
    {
      method,
      url,
      headers: kept,
      body: bodyOf(request.postData),
      at: `log.entries[${index}]`,
    },
  ];
}

function bodyOf(data: unknown): RequestBody | undefined {
  if (!isFields(data)) return undefined;
  const mediaType = asText(data.mimeType);
  const fields = listOf(data.params).map((one) => ({
    name: asText(field(one, 'name')),
    value: asText(field(one, 'value')),
    isFile: field(one, 'fileName') !== undefined,
  }));
  if (fields.length > 0) {
    return {
      mediaType: /multipart/i.test(mediaType) ? 'multipart/form-data' : 'application/x-www-form-urlencoded',
      fields,
    };
  }
  return readBodyText(mediaType, asText(data.text));
}
