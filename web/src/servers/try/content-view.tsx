import { Image, Text } from '@mantine/core';
import type { ContentBlock } from '../../answers.ts';
import { CodeBlock } from '../../ui/code-block.tsx';

/** JSON with line breaks; every digit of every number stays. */
function indented(text: string): string {
  if (text.length > 100_000 || !/^\s*[[{]/.test(text)) return text;
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let depth = 0;
  return text.replaceAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|\s+/g, (token, at: number) => {
    if (token.startsWith('"')) return token;
    if (/^\s/.test(token)) return '';
    if (token === ':') return ': ';
    const line = () => `\n${'  '.repeat(depth)}`;
    if (token === ',') return `,${line()}`;
    const isOpening = token === '{' || token === '[';
    if (isOpening && /^\s*[}\]]/.test(text.slice(at + 1, at + 50))) return token;
    if (isOpening) {
      depth++;
      return token + line();
    }
    if (/[{[]\s*$/.test(text.slice(Math.max(0, at - 50), at))) return token;
    depth--;
    return line() + token;
  });
}

/** One block of a result. */
export function ContentView({ block, isError }: { block: ContentBlock; isError: boolean }) {
  if (block.type === 'text') return <CodeBlock code={indented(block.text)} label={isError ? 'error' : 'answer'} />;
  const type = block.type === 'resource' ? block.resource.mimeType : block.mimeType;
  if (block.type === 'image' && /^image\/(png|jpeg|gif|webp)$/.test(type)) {
    return (
      <Image src={`data:${type};base64,${block.data}`} alt={`Image of the answer, ${type}`} maw={480} radius="md" />
    );
  }
  return (
    <Text size="sm" c="dimmed">
      A block of kind {block.type} ({type}), which is not shown here.
    </Text>
  );
}
