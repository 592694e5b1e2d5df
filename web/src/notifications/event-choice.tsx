import { Checkbox, type CheckboxGroupProps, SimpleGrid } from '@mantine/core';
import { noticeEventNames, noticeEvents } from '../../../src/domain/notices.ts';

type Props = Omit<CheckboxGroupProps, 'children'> & { disabled?: boolean };

/** Of which events somebody is told. */
export function EventChoice({ disabled, ...group }: Props) {
  return (
    <Checkbox.Group {...group} errorProps={{ role: 'alert' }}>
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm" mt={6}>
        {noticeEventNames.map((name) => (
          <Checkbox
            key={name}
            value={name}
            label={noticeEvents[name].label}
            description={noticeEvents[name].text}
            {...(disabled && { disabled })}
          />
        ))}
      </SimpleGrid>
    </Checkbox.Group>
  );
}
