import { Button, Code, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import type { JsonObject } from '../../../answers.ts';
import { useCanEdit } from '../../../frame/session.ts';
import { Folded } from '../../../ui/folded.tsx';
import { visible } from '../../../ui/text/visible.ts';
import { textOf } from '../../config.ts';
import { JsonTree } from './json-tree.tsx';

type Props = { answer: object; tool: JsonObject; slug: string };

/** Choosing a part of the answer by clicking on it. */
export function PickTransform({ answer, tool, slug }: Props) {
  const canEdit = useCanEdit();
  const navigate = useNavigate();
  const [picked, setPicked] = useState<string>();
  const before = textOf(tool.response_transform) || '.';
  const transform = picked === undefined ? undefined : before === '.' ? picked : `${before}.${picked}`;
  const use = () =>
    navigate(`/servers/${slug}`, {
      state: { change: { tool: textOf(tool.name), fields: { response_transform: transform } } },
    });
  if (!canEdit) return null;
  return (
    <Folded label="Pick a part of the answer">
      <Text size="sm" c="dimmed">
        Click the value that agents should get instead of the whole answer.
      </Text>
      <div className="th-code">
        <JsonTree value={answer} path="" onPick={setPicked} />
      </div>
      {transform !== undefined && (
        <Group gap="sm">
          <Stack gap={0}>
            <Text size="sm">
              response_transform: <Code>{visible(transform)}</Code>
            </Text>
          </Stack>
          <Button size="xs" onClick={use}>
            Use it in the configuration
          </Button>
        </Group>
      )}
    </Folded>
  );
}
