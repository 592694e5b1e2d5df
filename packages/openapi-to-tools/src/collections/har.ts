import { getField, isFields, type JsonFields, toList, toText } from '../document/lenient.ts';
import type { ApiDescription } from '../model.ts';
import { type DescribedRequest, describeRequests, findHostTitle } from './described-requests.ts';
import { type RequestBody, readBodyText } from './request-bodies.ts';

export function isHar(root: unknown): root is JsonFields {
  return Array.isArray(getField(getField(root, 'log'), 'entries'));
}

const staticFilePattern = /\.(?:js|mjs|css|map|png|jpe?g|gif|svg|ico|webp|avif|woff2?|ttf|mp4|webm|html?)$/i;

/** Reads a browser recording (HAR 1.2): requests for data, without pages, scripts, and images. */
export function readHar(root: JsonFields): ApiDescription {
  const requests = toList(getField(getField(root, 'log'), 'entries')).flatMap((entry, index) =>
    toRequests(entry, index),
  );
  return describeRequests(requests, {
    format: 'HAR',
    version: toText(getField(getField(root, 'log'), 'version')),
    title: findHostTitle(requests, 'Recording'),
    description: '',
    isRecorded: true,
  });
}

function toRequests(entry: unknown, index: number): DescribedRequest[] {
  const request = getField(entry, 'request');
  const url = toText(getField(request, 'url'));
  const method = toText(getField(request, 'method')).toUpperCase();
  const responseType = toText(getField(getField(getField(entry, 'response'), 'content'), 'mimeType'));
  const isPage =
    /^(?:text\/(?:html|css|javascript)|image\/|font\/|video\/|audio\/|application\/(?:x-)?javascript)/i.test(
      responseType,
    );
  if (
    !isFields(request) ||
    !/^https?:/i.test(url) ||
    method === 'OPTIONS' ||
    isPage ||
    staticFilePattern.test(url.split(/[?#]/)[0] ?? '')
  )
    return [];
  const headers = toList(request.headers).map((header): [string, string] => [
    toText(getField(header, 'name')),
    toText(getField(header, 'value')),
  ]);
  // Browser cookies belong to a person, not to a tool.
  const toolHeaders = headers.filter(([name]) => name !== '' && !/^cookie$/i.test(name));
  return [
    {
      method,
      url,
      headers: toolHeaders,
      body: readBody(request.postData),
      at: `log.entries[${index}]`,
    },
  ];
}

function readBody(data: unknown): RequestBody | undefined {
  if (!isFields(data)) return undefined;
  const mediaType = toText(data.mimeType);
  const fields = toList(data.params).map((parameter) => ({
    name: toText(getField(parameter, 'name')),
    value: toText(getField(parameter, 'value')),
    isFile: getField(parameter, 'fileName') !== undefined,
  }));
  if (fields.length > 0) {
    return {
      mediaType: /multipart/i.test(mediaType) ? 'multipart/form-data' : 'application/x-www-form-urlencoded',
      fields,
    };
  }
  return readBodyText(mediaType, toText(data.text));
}
