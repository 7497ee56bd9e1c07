package main

import (
	"runtime/debug"
	"strings"
)

// versions of modules, given as pairs of a name and a path.
func versions(pairs ...string) string {
	var found []string
	info, _ := debug.ReadBuildInfo()
	for i := 0; i+1 < len(pairs) && info != nil; i += 2 {
		for _, module := range info.Deps {
			if module.Path == pairs[i+1] {
				found = append(found, pairs[i]+" "+strings.TrimPrefix(module.Version, "v"))
			}
		}
	}
	return strings.Join(found, ", ")
}
