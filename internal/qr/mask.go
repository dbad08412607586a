package qr

import "slices"

// inverts reports whether a mask pattern inverts a module (table 10).
func inverts(mask, i, j int) bool {
	switch mask {
	case 0:
		return (i+j)%2 == 0
	case 1:
		return i%2 == 0
	case 2:
		return j%3 == 0
	case 3:
		return (i+j)%3 == 0
	case 4:
		return (i/2+j/3)%2 == 0
	case 5:
		return i*j%2+i*j%3 == 0
	case 6:
		return (i*j%2+i*j%3)%2 == 0
	default:
		return ((i+j)%2+i*j%3)%2 == 0
	}
}

// masked returns the symbol under a mask pattern, with its format information.
func (c *Code) masked(mask int) *Code {
	m := &Code{size: c.size, modules: slices.Clone(c.modules)}
	for k := range m.modules {
		if !m.modules[k].function && inverts(mask, k/c.size, k%c.size) {
			m.modules[k].dark = !m.modules[k].dark
		}
	}
	m.writeFormat(mask)
	return m
}

// bestMasked returns the symbol under the mask pattern with the least penalty.
func (c *Code) bestMasked() *Code {
	best := c.masked(0)
	least := best.penalty()
	for mask := 1; mask < 8; mask++ {
		m := c.masked(mask)
		if p := m.penalty(); p < least {
			best, least = m, p
		}
	}
	return best
}

// penalty returns how much in a symbol makes it hard to scan (7.8.3, table 11).
func (c *Code) penalty() int {
	total, dark := 0, 0
	line := make([]bool, c.size)
	for i := range c.size {
		for j := range line {
			line[j] = c.at(i, j).dark
			if line[j] {
				dark++
			}
			if i > 0 && j > 0 && line[j] == line[j-1] && line[j] == c.at(i-1, j).dark && line[j] == c.at(i-1, j-1).dark {
				total += 3
			}
		}
		total += runs(line) + finders(line)
		for j := range line {
			line[j] = c.at(j, i).dark
		}
		total += runs(line) + finders(line)
	}
	// 10 for each 5 % that the share of dark modules is away from one half.
	all := len(c.modules)
	return total + 10*(max(20*dark-10*all, 10*all-20*dark)/all)
}

// runs is the penalty of five and more modules of one colour.
func runs(line []bool) (total int) {
	run := 0
	for i, dark := range line {
		if i > 0 && dark != line[i-1] {
			run = 0
		}
		switch run++; {
		case run == 5:
			total += 3
		case run > 5:
			total++
		}
	}
	return total
}

// finders is the penalty of what looks like a finder pattern with four light modules on one
// side. The quiet zone is light.
func finders(line []bool) (total int) {
	pattern := []bool{true, false, true, true, true, false, true}
	for i := range len(line) - len(pattern) + 1 {
		end := i + len(pattern)
		if slices.Equal(line[i:end], pattern) &&
			(!slices.Contains(line[max(0, i-4):i], true) || !slices.Contains(line[end:min(len(line), end+4)], true)) {
			total += 40
		}
	}
	return total
}
