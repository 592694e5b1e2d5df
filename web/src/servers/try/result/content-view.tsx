import { Anchor, Image, Text } from '@mantine/core';
import type { ContentBlock } from '../../../answers.ts';
import { CodeBlock } from '../../../ui/text/code-block.tsx';
import { indented } from '../../../ui/text/indented.ts';
import { fileIn, fileText, textIn } from './file-in.ts';

/** One block of a result. */
export function ContentView({ block, isError }: { block: ContentBlock; isError: boolean }) {
  const file = fileIn(block);
  if (!file) return <CodeBlock code={indented(textIn(block))} label={isError ? 'error' : 'answer'} />;
  if (block.type === 'image' && /^image\/(png|jpeg|gif|webp)$/.test(file.type)) {
    return (
      <Image
        src={`data:${file.type};base64,${block.data}`}
        alt={`Image of the answer, ${file.type}`}
        maw={480}
        radius="md"
      />
    );
  }
  if (block.type === 'resource_link') {
    return (
      <Text size="sm">
        <Anchor href={block.uri} download>
          Download {fileText(file)}
        </Anchor>
      </Text>
    );
  }
  return <Text size="sm">A file ({fileText(file)}). Agents get it as it is; it is not shown here.</Text>;
}
