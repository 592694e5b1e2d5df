import { ActionIcon, Badge, Box, Collapse, Group, Switch, Text, Tooltip, UnstyledButton } from '@mantine/core';
import {
  IconAlertTriangle,
  IconArrowDown,
  IconArrowUp,
  IconChevronDown,
  IconChevronRight,
  IconCopyPlus,
  IconGripVertical,
  IconTrash,
} from '@tabler/icons-react';
import { type DragEvent, useState } from 'react';
import { visible } from '../../../ui/text/visible.ts';
import { isDisabled, textOf, valueAt } from '../../config.ts';
import { useEditor, useField } from '../model/editor-context.ts';
import { ToolForm } from './tool-form.tsx';

type Props = {
  index: number;
  count: number;
  isOpen: boolean;
  onToggle: () => void;
  onMove: (to: number) => void;
  onDuplicate: () => void;
  onRemove: () => void;
  onDrag: () => void;
  onDrop: () => void;
};

/** A tool in the list: its head with its actions, and its form when it is open. */
export function ToolItem(props: Props) {
  const { index, isOpen, onToggle, onDrag, onDrop } = props;
  const { config, isReadOnly } = useEditor();
  const [isOver, setOver] = useState(false);
  const tool = valueAt(config, ['tools', index]);
  const name = visible(textOf(valueAt(tool, ['name']))) || `Tool ${index + 1}`;
  const isOff = isDisabled(tool);
  const allow = (event: DragEvent, over: boolean) => {
    event.preventDefault();
    setOver(over);
  };
  return (
    <Box
      className="th-card th-tool"
      data-over={isOver || undefined}
      data-open={isOpen || undefined}
      data-off={isOff || undefined}
      onDragOver={(event) => allow(event, true)}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        allow(event, false);
        onDrop();
      }}
    >
      <Group gap={4} wrap="nowrap" px="xs" py={6}>
        {!isReadOnly && (
          <Box draggable onDragStart={onDrag} style={{ cursor: 'grab', display: 'flex' }} aria-hidden>
            <IconGripVertical size={16} color="var(--mantine-color-dimmed)" />
          </Box>
        )}
        <UnstyledButton onClick={onToggle} aria-expanded={isOpen} flex={1} miw={0} p={4}>
          <Group gap="xs" wrap="nowrap">
            {isOpen ? <IconChevronDown {...chevron} /> : <IconChevronRight {...chevron} />}
            <Badge
              color={isOff ? 'gray' : methodColor(textOf(valueAt(tool, ['method'])))}
              className="th-mono"
              miw={62}
              flex="none"
            >
              {textOf(valueAt(tool, ['method'])) || '–'}
            </Badge>
            <Text className="th-mono" fw={600} truncate c={isOff ? 'dimmed' : ''}>
              {name}
            </Text>
            {isOff && (
              <Badge variant="default" c="dimmed" flex="none" className="th-off-mark">
                Disabled
              </Badge>
            )}
            <Marks index={index} />
          </Group>
        </UnstyledButton>
        {!isReadOnly && <ToolSwitch index={index} name={name} />}
        {!isReadOnly && <ToolActions {...props} name={name} />}
      </Group>
      <Collapse expanded={isOpen} keepMounted={false}>
        <Box p="md" pt="xs">
          <ToolForm index={index} />
        </Box>
      </Collapse>
    </Box>
  );
}

const chevron = { size: 16, style: { flex: 'none' } } as const;

function methodColor(method: string): string {
  if (method === 'GET') return 'accent';
  if (method === 'DELETE') return 'red';
  return method === '' ? 'gray' : 'green';
}

/** A mark for problems inside a tool that is not open. */
function Marks({ index }: { index: number }) {
  const { errors, warnings } = useField(['tools', index], true);
  const { isNew } = useEditor();
  const count = errors.length > 0 ? errors.length : warnings.length;
  if (count === 0 || (isNew && errors.length > 0)) return null;
  const summary = errors.length > 0 ? `${count} to solve` : `${count} to look at`;
  return (
    <Tooltip label={summary}>
      <Box c={errors.length > 0 ? 'var(--th-bad)' : 'var(--th-warn)'} component="span" display="inline-flex">
        <IconAlertTriangle size={15} aria-label={summary} />
      </Box>
    </Tooltip>
  );
}

function ToolActions({ index, count, name, onMove, onDuplicate, onRemove }: Props & { name: string }) {
  const actions = [
    { label: `Move ${name} up`, Icon: IconArrowUp, run: () => onMove(index - 1), isOff: index === 0 },
    { label: `Move ${name} down`, Icon: IconArrowDown, run: () => onMove(index + 1), isOff: index === count - 1 },
    { label: `Duplicate ${name}`, Icon: IconCopyPlus, run: onDuplicate, isOff: false },
    { label: `Delete ${name}`, Icon: IconTrash, run: onRemove, isOff: false },
  ];
  return (
    <Group gap={0} wrap="nowrap" className="th-tool-actions">
      {actions.map(({ label, Icon, run, isOff }) => (
        <Tooltip key={label} label={label}>
          <ActionIcon variant="subtle" color="gray" size="md" aria-label={label} onClick={run} disabled={isOff}>
            <Icon size={16} />
          </ActionIcon>
        </Tooltip>
      ))}
    </Group>
  );
}

/** Whether agents get a tool; one that is off stays in the configuration. */
function ToolSwitch({ index, name }: { index: number; name: string }) {
  const tool = useField(['tools', index]);
  const field = useField(['tools', index, 'disabled']);
  const isOn = !isDisabled(tool.value);
  return (
    <Tooltip label={isOn ? 'Agents get this tool' : 'Kept here, hidden from agents'}>
      <Switch
        id={field.id}
        aria-label={`Agents get ${name}`}
        checked={isOn}
        onChange={({ currentTarget: { checked } }) => field.set(checked ? undefined : true)}
        className="th-tool-switch"
        size="sm"
        mx={4}
        flex="none"
      />
    </Tooltip>
  );
}
