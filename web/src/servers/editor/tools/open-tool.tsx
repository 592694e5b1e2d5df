import { ActionIcon, Box, Group, Title, Tooltip } from '@mantine/core';
import { IconArrowDown, IconArrowUp, IconCopyPlus, IconTrash, IconX } from '@tabler/icons-react';
import { visible } from '../../../ui/text/visible.ts';
import { textOf } from '../../config.ts';
import { fieldId, useEditor, useValue } from '../model/editor-context.ts';
import { ToolForm } from './tool-form.tsx';

type Props = {
  index: number;
  count: number;
  onMove: (from: number, to: number) => void;
  onDuplicate: (index: number) => void;
  onRemove: (index: number) => void;
  onClose: () => void;
};

/** The name of a tool as it is shown. */
export function shownName(name: unknown, index: number): string {
  return visible(textOf(name)) || `Tool ${index + 1}`;
}

/** The tool that is edited, with what can be done with it. */
export function OpenTool({ index, count, onMove, onDuplicate, onRemove, onClose }: Props) {
  const { isReadOnly } = useEditor();
  const name = shownName(useValue(['tools', index, 'name']), index);
  const changes = [
    { label: `Move ${name} up`, Icon: IconArrowUp, run: () => onMove(index, index - 1), isOff: index === 0 },
    {
      label: `Move ${name} down`,
      Icon: IconArrowDown,
      run: () => onMove(index, index + 1),
      isOff: index === count - 1,
    },
    { label: `Duplicate ${name}`, Icon: IconCopyPlus, run: () => onDuplicate(index), isOff: false },
    { label: `Delete ${name}`, Icon: IconTrash, run: () => onRemove(index), isOff: false },
  ];
  const actions = [...(isReadOnly ? [] : changes), { label: `Close ${name}`, Icon: IconX, run: onClose, isOff: false }];
  return (
    <Box component="section" className="th-card th-open-tool" aria-label={`The tool ${name}`} p="md">
      <Group gap="xs" mb="sm" id={fieldId(`tools[${index}]`)} tabIndex={-1} justify="space-between">
        <Title order={3} className="th-mono" size="h5" flex="1 1 8rem" miw={0}>
          {name}
        </Title>
        <Group gap={0} wrap="nowrap">
          {actions.map(({ label, Icon, run, isOff }) => (
            <Tooltip key={label} label={label}>
              <ActionIcon variant="subtle" color="gray" size="md" aria-label={label} onClick={run} disabled={isOff}>
                <Icon size={16} />
              </ActionIcon>
            </Tooltip>
          ))}
        </Group>
      </Group>
      <ToolForm index={index} />
    </Box>
  );
}
