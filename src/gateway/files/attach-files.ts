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

/** A call whose answer has large files. */
export type CallWithFiles = FileOwner & { asked: ToolCall; tool: Pick<HostedTool, 'name'> };

/** Stores the large files of a result, and replaces the blocks that stand for them by links. */
export async function attachFiles(
  call: CallWithFiles,
  { files = [], ...result }: CutResult,
  parts: AttachParts,
): Promise<ToolResult> {
  const blocks: ContentBlock[][] = [];
  // One after the other, so that a call with many files does not delay the writes of others.
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

/** Clients of older revisions would refuse a result with a block of this type. */
function knowsLinks({ era, revision = '' }: ToolCall): boolean {
  return era === 'modern' || revision >= firstRevisionWithLinks;
}

/** Many clients give the model only the texts of a result, so the text has the address too. */
function keptText(head: FileHead, size: number, uri: string): string {
  return `The response is a file: ${about(head, size)}. Download it from ${uri} within ten minutes; a tool that takes a file as Base64 accepts this address instead.`;
}

const spaces = {
  workspace: 'the space of this workspace',
  address: 'the share of the space that callers from this address have without a credential that is known to be good',
};

function notKeptText(head: FileHead, size: number, kept: Exclude<Kept, { outcome: 'kept' }>): string {
  const why =
    kept.outcome === 'full'
      ? `the files of the last ten minutes fill ${spaces[kept.of]}; call the tool again in ${kept.freeInS} seconds`
      : 'it could not be stored; call the tool again later';
  return `The response is a file: ${about(head, size)}. It is too large for the result, and it has no address: ${why}, or ask for less.`;
}

function about({ name, mediaType }: FileHead, size: number): string {
  return `${name} (${mediaType}, ${size} bytes)`;
}

/** The addresses of files: below the base URL, and on the own host of each server. */
export type FileAddresses = {
  /** `ownOrigin` is the origin of the server's own host, for a request that came to it. */
  addressOf(id: string, ownOrigin: string | undefined): string;
  /** The id in an address of ours; undefined for any other text. */
  idIn(text: string): string | undefined;
  /** Whether a file of this server is served on an own host with this origin. */
  isOwnOrigin(origin: string, slug: string): boolean;
};

/** Longest text that can be such an address. */
const longest = 400;

export function createFileAddresses(baseUrl: string, serverHosts: string | undefined): FileAddresses {
  const hosts = serverHosts === undefined ? undefined : createServerHosts(serverHosts, baseUrl);
  const { origin, protocol } = new URL(baseUrl);
  const readPath = pathReader(baseUrl);
  return {
    addressOf: (id, ownOrigin) => (ownOrigin ?? baseUrl) + filePath(id),
    idIn(text) {
      const url = text.length <= longest && /^https?:/.test(text) ? readUrl(text) : undefined;
      // Only the one plain form: no credentials, query, fragment or encoding.
      if (!url || url.href !== text || url.origin + url.pathname !== text) return undefined;
      if (url.origin === origin) return fileIdIn(readPath(url.pathname));
      return url.protocol === protocol && hosts?.slugOf(url.host) ? fileIdIn(url.pathname) : undefined;
    },
    isOwnOrigin: (origin, slug) => hosts?.originOf(slug) === origin,
  };
}
