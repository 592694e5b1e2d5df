import { type FileHead, fileHeadOf } from '../../domain/files/file-names.ts';
import { createServerHosts } from '../../domain/http/own-hosts.ts';
import { readUrl } from '../../domain/http/read-url.ts';
import { type ContentBlock, firstRevisionWithLinks, type ToolCall, type ToolResult } from '../../domain/mcp.ts';
import { fileIdIn, filePath, pathReader } from '../../routes.ts';
import { type AnswerFile, withBlocks } from '../answer/answer-files.ts';
import type { CutResult } from '../answer/fit-answer.ts';
import { tokensOfContent } from '../answer/json-answer.ts';
import type { HostedTool } from '../hosted/hosted-server.ts';
import type { FileOwner, Kept, KeptFiles } from './kept-files.ts';

export type AttachParts = { files: KeptFiles; fileAddresses: FileAddresses };

/** A call whose response has large files. */
export type CallWithFiles = FileOwner & { asked: ToolCall; tool: Pick<HostedTool, 'name'> };

/** Stores the large files of a result, and replaces their placeholders with links. */
export async function attachFiles(
  call: CallWithFiles,
  { files = [], ...result }: CutResult,
  parts: AttachParts,
): Promise<ToolResult> {
  const blocks: ContentBlock[][] = [];
  // Stores one file after the other, so that a call with many files does not delay the writes of others.
  for (const file of files) blocks.push(await attached(call, file, parts));
  const tokens = (result.tokens ?? 0) + tokensOfContent(blocks.flat());
  return { ...result, tokens, content: withBlocks(result.content, blocks) };
}

async function attached(call: CallWithFiles, file: AnswerFile, parts: AttachParts): Promise<ContentBlock[]> {
  const { asked, tool } = call;
  const head = fileHeadOf(file.name, file.mediaType, tool.name);
  const size = file.bytes.length;
  const kept = await parts.files.keep(call, head, file.bytes, asked.requestId);
  if (kept.outcome !== 'kept') return [{ type: 'text', text: notKeptText(head, size, kept) }];
  const uri = parts.fileAddresses.addressOf(kept.id, asked.ownOrigin);
  const text: ContentBlock = { type: 'text', text: keptText(head, size, uri) };
  const link: ContentBlock = { type: 'resource_link', uri, name: head.name, mimeType: head.mediaType, size };
  return knowsLinks(asked) ? [text, link] : [text];
}

/**
 * Returns true if the client's revision allows resource links. Clients of older revisions reject a result that contains
 * one.
 */
function knowsLinks({ era, revision = '' }: ToolCall): boolean {
  return era === 'modern' || revision >= firstRevisionWithLinks;
}

/**
 * Describes a stored file. Many clients pass only the texts of a result to the model, so the text contains the URL too.
 */
function keptText(head: FileHead, size: number, uri: string): string {
  return `The response is a file: ${about(head, size)}. Download it from ${uri} within ten minutes. A tool that takes a file as Base64 also accepts this URL instead.`;
}

const spaces = {
  workspace: 'the file storage of this workspace',
  address: 'the share of the file storage that unverified callers from this address have',
};

function notKeptText(head: FileHead, size: number, kept: Exclude<Kept, { outcome: 'kept' }>): string {
  const why =
    kept.outcome === 'full'
      ? `the files of the last ten minutes fill ${spaces[kept.of]}; call the tool again in ${kept.freeInS} seconds`
      : 'it could not be stored; call the tool again later';
  return `The response is a file: ${about(head, size)}. It is too large for the result, and it has no URL: ${why}, or request less data.`;
}

function about({ name, mediaType }: FileHead, size: number): string {
  return `${name} (${mediaType}, ${size} bytes)`;
}

/** URLs of files: below the base URL, and on each server's own host. */
export type FileAddresses = {
  /** Returns the URL of a file. `ownOrigin` is the origin of the server's own host, if the request was sent to it. */
  addressOf(id: string, ownOrigin: string | undefined): string;
  /** Returns the id in one of our file URLs, or undefined for any other text. */
  idIn(text: string): string | undefined;
  /** Returns true if a file of this server is served at this origin of a server's own host. */
  isOwnOrigin(origin: string, slug: string): boolean;
};

/** Maximum length of a file URL, in characters. */
const longest = 400;

export function createFileAddresses(baseUrl: string, serverHosts: string | undefined): FileAddresses {
  const hosts = serverHosts === undefined ? undefined : createServerHosts(serverHosts, baseUrl);
  const { origin, protocol } = new URL(baseUrl);
  const readPath = pathReader(baseUrl);
  return {
    addressOf: (id, ownOrigin) => (ownOrigin ?? baseUrl) + filePath(id),
    idIn(text) {
      const url = text.length <= longest && /^https?:/.test(text) ? readUrl(text) : undefined;
      // Only the plain form is accepted: no credentials, query, fragment, or encoding.
      if (!url || url.href !== text || url.origin + url.pathname !== text) return undefined;
      if (url.origin === origin) return fileIdIn(readPath(url.pathname));
      return url.protocol === protocol && hosts?.slugOf(url.host) ? fileIdIn(url.pathname) : undefined;
    },
    isOwnOrigin: (origin, slug) => hosts?.originOf(slug) === origin,
  };
}
