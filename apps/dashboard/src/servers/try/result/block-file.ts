import type { ContentBlock } from '../../../api-types.ts';
import { formatSize } from '../../../ui/text/size-text.ts';
import { toVisible } from '../../../ui/text/visible.ts';

/** Content of a block that is not text. */
export type BlockFile = { type: string; bytes: number; name: string | undefined };

/** Returns the file in a block, or undefined for text, including text of an embedded resource. */
export function getFile(block: ContentBlock): BlockFile | undefined {
  if (block.type === 'text') return undefined;
  if (block.type === 'resource_link') return { type: block.mimeType, bytes: block.size, name: block.name };
  if (block.type !== 'resource')
    return { type: block.mimeType, bytes: getBase64Size(block.data), name: getFileName(block) };
  const { resource } = block;
  return 'text' in resource
    ? undefined
    : { type: resource.mimeType, bytes: getBase64Size(resource.blob), name: getFileName(resource) };
}

/** Returns the text in a block, or an empty string for a file. */
export function getText(block: ContentBlock): string {
  if (block.type === 'text') return block.text;
  return block.type === 'resource' && 'text' in block.resource ? block.resource.text : '';
}

function getFileName({ _meta }: { _meta?: { 'toolhost/file_name': string } }): string | undefined {
  return _meta?.['toolhost/file_name'];
}

function getBase64Size(base64: string): number {
  const padding = /=*$/.exec(base64)?.[0].length ?? 0;
  return (base64.length / 4) * 3 - padding;
}

/** Formats a file: `report.pdf, application/pdf, 12.3 KiB`. */
export function formatFile({ type, bytes, name }: BlockFile): string {
  return [...(name === undefined ? [] : [toVisible(name)]), toVisible(type), formatSize(bytes)].join(', ');
}
